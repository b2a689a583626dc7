"""What a person looks at: drawings of designs, for the terminal and as SVG."""
