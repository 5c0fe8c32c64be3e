import { command } from '../command.ts'
import { argumentList, url } from '../fields.ts'

/** Defines a channel that outlives every connection. */
export const defChannel = command({
  name: 'DEF_CHANNEL',
  code: 7,
  fields: { url, args: argumentList },
  result: 'channel id',
})
