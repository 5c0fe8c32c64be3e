import { command } from '../command.ts'
import { argumentList, name } from '../fields.ts'

/** Makes a metric instance; nothing is measured until somebody wants it. */
export const collect = command({
  name: 'COLLECT',
  code: 1,
  fields: { metric: name, args: argumentList },
  result: 'metric id',
})
