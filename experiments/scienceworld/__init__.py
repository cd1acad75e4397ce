"""ScienceWorld's school experiments as a domain that nobody tuned on."""
