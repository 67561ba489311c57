"""What is sent to the other machine: plain Python, readable by 3.6, of no package."""
