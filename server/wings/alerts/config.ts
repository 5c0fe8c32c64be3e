/** The section [alerts]: the rules of the operator (docs/alerts.md). */
import { z } from 'zod'
import { dependentKey, duration, liveKey, path, type SectionConfig, section, toggle } from '../../kit/config.ts'

function paths() {
  return {
    type: z.array(path().type).max(64),
    expected: 'a list of at most 64 paths, of which the last part may have "*" and "?", like ["rules/*.yml"]',
  }
}

const roleName = () => ({ type: z.string().regex(/^\P{Cc}{1,255}$/u), expected: 'the name of a role' })

export const alertsSection = section(
  z
    .strictObject({
      rules: liveKey(
        paths(),
        [],
        'Rule files, as Prometheus has them. They are read again with the configuration, also if nothing else has changed.',
      ),
      builtin: dependentKey(
        toggle(),
        true,
        'Whether the rules that come with the server are evaluated as well, about hosts and the server itself. If this is left out ' +
          'and there is no history, or none of `rules.*`, they are not.',
        '`true`',
      ),
      interval: liveKey(duration('1s', '1d'), '1m', 'How often groups are evaluated that name no interval.'),
      role: liveKey(roleName(), 'consumer', 'The role whose rules say what the expressions may read.'),
    })
    .describe('Rules over the history, of the tenant `default`: [alerts.md](alerts.md).'),
)
export type AlertsSection = SectionConfig<typeof alertsSection>
