# SPDX-License-Identifier: MIT
# The tests' part of the Makefile.
