import { command } from '../command.ts'

/** Nothing: a keep-alive. */
export const nop = command({ name: 'NOP', code: 0, fields: {}, result: '0' })
