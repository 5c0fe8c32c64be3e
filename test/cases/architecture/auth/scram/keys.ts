// The client's half of SCRAM is free of node:.
import { createHash } from 'node:crypto'

export const hash = createHash
