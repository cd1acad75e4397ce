"""ScienceWorld's experiments of a school's science class: a domain that nobody tuned on."""
