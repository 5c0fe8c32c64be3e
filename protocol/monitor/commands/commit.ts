import { command } from '../command.ts'
import { flag, transactionId } from '../fields.ts'

/** The value is processed and will not be sent again. */
export const commit = command({
  name: 'COMMIT',
  code: 10,
  fields: { transaction: transactionId, through: flag },
  result: '0',
})
