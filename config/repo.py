"""A repository's own settings: `.github/mlm.yml` on its default branch, over the Megatron-LM defaults beside this file."""
