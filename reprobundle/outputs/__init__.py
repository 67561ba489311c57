"""What is inside an output file: its kind, its arrays, cells or lines."""
