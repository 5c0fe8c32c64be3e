import { randomBytes } from 'node:crypto'

export const nonce = randomBytes
