"""What of the contract code can be asked under its reading, with the sizes and inputs that it takes."""
