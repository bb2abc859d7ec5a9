"""What one grading found (`model`), and one module per way of showing it."""
