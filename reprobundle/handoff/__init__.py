"""Hand a bundle to another machine over ssh, fetch what its replay gave there."""
