"""What a source says: its syntax, its definitions and who calls them, and what names mean. Nothing of it is run."""
