import { command } from '../command.ts'
import { uint32 } from '../fields.ts'

/** Makes another channel of this identity the current one of this connection. */
export const setChannel = command({ name: 'SET_CHANNEL', code: 8, fields: { channel: uint32 }, result: '0' })
