/** The section [host]. */
import { z } from 'zod'
import { section } from '../../kernel/config/schema.ts'
import { integer, key } from '../../kernel/config/value-types.ts'

export const hostSection = section(
  z
    .strictObject({
      interval_ms: key(
        integer(10, 86_400_000),
        1_000n,
        'Milliseconds between two readings, unless the consumer sets an interval.',
      ),
    })
    .describe('The metrics of this machine.'),
)
