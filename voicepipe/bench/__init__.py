"""`voicepipe bench engines`: what a turn costs on this machine, with the engines of a configuration."""
