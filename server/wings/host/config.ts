/** The section [host]. */
import { z } from 'zod'
import { integer, key, section } from '../../kit/config.ts'

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
