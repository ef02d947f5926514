"""The development inbox: mail that is sent without a provider can be read here, and leaves the machine nowhere."""
