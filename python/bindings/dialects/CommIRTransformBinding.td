include "dialect/CommIR/Transform/CommIRTransformOps.td"
