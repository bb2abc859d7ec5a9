"""For authors: the rules that a kata is held to, and the mutants that its hidden tests have to fail."""
