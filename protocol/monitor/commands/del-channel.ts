import { command } from '../command.ts'
import { channel } from '../fields.ts'

/** Destroys a channel and all that is queued on it. */
export const delChannel = command({ name: 'DEL_CHANNEL', code: 9, fields: { channel }, result: '0' })
