import { command } from '../command.ts'
import { argumentList, name } from '../fields.ts'

/** Runs a control; its result comes as a value. */
export const execute = command({
  name: 'EXECUTE',
  code: 11,
  fields: { control: name, args: argumentList },
  result: 'result id',
})
