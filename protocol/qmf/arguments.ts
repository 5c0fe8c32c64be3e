/** Which arguments of a method travel which way, in the order of the schema; IO ones travel both. */
import type { SchemaArgument, SchemaMethod } from './types.ts'

/** What a call (`M`) carries. */
export function inputs(method: SchemaMethod): readonly SchemaArgument[] {
  return method.arguments.filter(({ direction }) => direction !== 'O')
}

/** What a reply (`m`) with status 0 carries. */
export function outputs(method: SchemaMethod): readonly SchemaArgument[] {
  return method.arguments.filter(({ direction }) => direction !== 'I')
}
