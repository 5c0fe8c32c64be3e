import { command } from '../command.ts'
import { channel, uint32 } from '../fields.ts'

/** Values of this id wait on that channel until GET. */
export const buffer = command({ name: 'BUFFER', code: 4, fields: { metric: uint32, channel }, result: '0' })
