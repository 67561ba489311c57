"""Read a bundle that lies on a server, as little of it as is asked for."""
