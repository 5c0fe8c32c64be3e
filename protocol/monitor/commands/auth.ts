import { command } from '../command.ts'
import { method, opaque } from '../fields.ts'

/** Says who the consumer is. */
export const auth = command({ name: 'AUTH', code: 6, fields: { method, data: opaque }, result: 'channel id' })
