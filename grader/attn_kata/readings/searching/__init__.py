"""The search for the reading that explains what code computes with the fewest mistakes."""
