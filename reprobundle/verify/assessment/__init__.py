"""What the evidence of a bundle comes to: points, recommendation, versions."""
