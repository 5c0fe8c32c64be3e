import { command } from '../command.ts'
import { channel, uint32 } from '../fields.ts'

/** Sends what waits for an event-like metric; measures a continuous one now. */
export const get = command({ name: 'GET', code: 5, fields: { metric: uint32, channel }, result: '0' })
