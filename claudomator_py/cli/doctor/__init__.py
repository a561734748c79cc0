"""What ``doctor`` looks at, a file for each part of the world: each look gives findings with remedies."""
