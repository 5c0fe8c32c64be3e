import { command } from '../command.ts'
import { channel, uint32 } from '../fields.ts'

/** No more values of this id to that channel; what waits there for it is lost. */
export const stop = command({ name: 'STOP', code: 2, fields: { metric: uint32, channel }, result: '0' })
