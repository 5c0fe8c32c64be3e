/** The section of Mono agents, with its tables. */
import { z } from 'zod'
import { camelCased, type Section, type SectionConfig } from '../../config/schema.ts'
import { addressOrOff, feeds, integer, key, networks, oneOf, tenant, wireName } from '../../config/value-types.ts'
import { parseAddress } from '../../core/address.ts'

const DIALECTS = ['gist', 'mono-2014'] as const

/** Further addresses that agents connect to, each with a dialect and a name of its own. */
function listeners() {
  const table = z.strictObject({
    listen: z.string().transform((text, context) => {
      const address = parseAddress(text)
      if (address !== undefined) return address
      context.issues.push({ code: 'invalid_format', format: 'text', input: text })
      return z.NEVER
    }),
    dialect: z.enum(DIALECTS).default('gist'),
    agent: wireName().type.optional(),
  })
  return {
    type: z.array(table),
    expected:
      'tables with a `listen` each (an address like "127.0.0.1:8889"), and perhaps a `dialect` ("gist" or ' +
      '"mono-2014") and an `agent` (a name)',
  }
}

/** Files that agents write instead of connecting. */
function files() {
  const table = z.strictObject({
    path: z.string().regex(/^[^\0]+$/),
    agent: wireName().type,
    follow: z.boolean().default(true),
  })
  return {
    type: z.array(table).refine((list) => new Set(list.map(({ agent }) => agent)).size === list.length),
    expected: 'tables with a `path` and an `agent` (a name, none twice) each, and perhaps `follow` (true or false)',
  }
}

const type = z
  .strictObject({
    listen: key(addressOrOff(), '127.0.0.1:8888', 'The TCP address that agents connect to.'),
    dialect: key(
      oneOf(...DIALECTS),
      'gist',
      'What agents of `listen` speak. With the wrong one they hang at the first question.',
    ),
    listener: key(listeners(), [], 'Further addresses, for agents of another dialect or with names. Only in the file.'),
    file: key(files(), [], 'Files that agents write, read from the start and then followed. Only in the file.'),
    tenant: key(tenant(), 'default', 'The tenant that these metrics belong to.'),
    feed: key(
      feeds(),
      [],
      'Agents of other tenants, by the networks they connect from; the first that fits counts. Only in the file.',
    ),
    allow: key(networks(), ['127.0.0.0/8', '::1/128'], 'Source addresses that agents are taken from.'),
    max_agents: key(integer(1, 100_000), 1_000n, 'Agents connected at once.'),
    max_counters: key(integer(1, 32_767), 4_096n, 'Counters that one agent may announce, or list.'),
    max_metrics: key(integer(1, 16_777_216), 100_000n, 'Metrics remembered at once, of all agents together.'),
  })
  .describe(
    'Counters of Mono agents. Off unless this section stands in the file, be it empty, or a variable names a key of it; ' +
      'its addresses must be free then.',
  )

export const monoSection = {
  type,
  read({ listen, dialect, listener, file, feed, ...rest }: z.output<typeof type>, written?: ReadonlySet<string>) {
    const first = listen && { key: 'mono.listen', listen, dialect, agent: undefined }
    const others = listener.map(({ listen, dialect, agent }) => ({ key: 'mono.listener', listen, dialect, agent }))
    return {
      ...camelCased(rest),
      /** None if the section is absent. */
      listeners: written === undefined ? [] : first === undefined ? others : [first, ...others],
      files: file,
      feeds: feed,
    }
  },
} satisfies Section<typeof type>
export type MonoSection = SectionConfig<typeof monoSection>
