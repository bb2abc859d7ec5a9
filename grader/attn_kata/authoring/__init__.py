"""For authors of katas: the rules that every kata must follow, and the mutants that its hidden tests must fail."""
