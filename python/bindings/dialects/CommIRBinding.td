include "dialect/CommIR/CommIRTransferOps.td"
