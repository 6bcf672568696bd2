"""What the compiler made of kernels, as texts for people: found in the store, disassembled, mapped to source lines."""
