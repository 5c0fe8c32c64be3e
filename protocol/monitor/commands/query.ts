import { command } from '../command.ts'
import { argumentList, name } from '../fields.ts'

/** COLLECT, GET and STOP in one, for a continuous metric. */
export const query = command({
  name: 'QUERY',
  code: 12,
  fields: { metric: name, args: argumentList },
  result: 'metric id',
})
