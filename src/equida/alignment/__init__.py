"""What is minimised between two domains."""
