import { command } from '../command.ts'
import { name } from '../fields.ts'

/** Puts a layer under the connection; nothing may be sent until it is answered. */
export const wrap = command({
  name: 'WRAP',
  code: 13,
  fields: { layer: name },
  result: '0, or 4294967294 when capabilities change',
})
