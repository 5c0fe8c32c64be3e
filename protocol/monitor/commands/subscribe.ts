import { command } from '../command.ts'
import { channel, uint32 } from '../fields.ts'

/** Values of this id go to that channel by themselves. */
export const subscribe = command({ name: 'SUBSCRIBE', code: 3, fields: { metric: uint32, channel }, result: '0' })
