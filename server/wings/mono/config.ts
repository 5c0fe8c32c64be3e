/** The section [mono], with its tables. */
import { z } from 'zod'
import {
  addressOrOff,
  camelCased,
  feed,
  feeds,
  integer,
  key,
  liveKey,
  networks,
  oneOf,
  path,
  type Section,
  type SectionConfig,
  tenant,
  toggle,
  wireName,
} from '../../kit/config.ts'
import { parseAddress } from '../../kit/io/address.ts'

const DIALECTS = ['gist', 'mono-2014'] as const

/** Additional addresses for agents, each with its own dialect and name. */
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
      'tables, each with a `listen` (an address such as "127.0.0.1:8889") and optionally a `dialect` ("gist" or ' +
      '"mono-2014") and an `agent` (a name)',
  }
}

/** Files that agents write instead of connecting. */
function files() {
  const table = z.strictObject({
    path: path().type,
    agent: wireName().type,
    follow: z.boolean().default(true),
  })
  return {
    type: z.array(table).refine((list) => new Set(list.map(({ agent }) => agent)).size === list.length),
    expected: 'tables, each with a `path`, an `agent` (a unique name) and optionally `follow` (true or false)',
  }
}

const type = z
  .strictObject({
    listen: key(addressOrOff(), '127.0.0.1:8888', 'The TCP address that agents connect to.'),
    dialect: key(
      oneOf(...DIALECTS),
      'gist',
      'The dialect of agents that connect to `listen`. With the wrong one, they hang at the first request.',
    ),
    listener: key(
      listeners(),
      [],
      'Additional addresses, for agents of another dialect or with names. Only in the file.',
    ),
    file: key(
      files(),
      [],
      'Files that agents write, which are read from the start and then followed. Only in the file.',
    ),
    tenant: key(tenant(), 'default', 'The tenant that these metrics belong to.'),
    feed: key(
      feeds(feed()),
      [],
      'Agents of other tenants, by the networks they connect from; the first match counts. Only in the file.',
    ),
    allow: liveKey(networks(), ['127.0.0.0/8', '::1/128'], 'Source addresses from which agents may connect.'),
    anywhere: key(
      toggle(),
      false,
      'In a cluster: whether agents may connect to any node; controls reach those of the node that leads. Without this ' +
        '`listen` is refused there.',
    ),
    max_agents: key(integer(1, 100_000), 1_000n, 'The largest number of connected agents; files do not count.'),
    max_counters: key(
      integer(1, 32_767),
      4_096n,
      'The largest number of counters that one agent may announce or list.',
    ),
    max_metrics: key(integer(1, 16_777_216), 100_000n, 'The largest number of metrics of all agents together.'),
  })
  .describe(
    'Counters of Mono agents. Off unless the file has this section, even if empty, or a variable sets one of its keys; ' +
      'then its addresses must be free.',
  )

export const monoSection = {
  type,
  read({ listen, dialect, listener, file, feed, ...rest }: z.output<typeof type>, written?: ReadonlySet<string>) {
    const first = listen && { key: 'mono.listen', listen, dialect, agent: undefined }
    const others = listener.map(({ listen, dialect, agent }) => ({ key: 'mono.listener', listen, dialect, agent }))
    return {
      ...camelCased(rest),
      /** Empty if the section is absent. */
      listeners: written === undefined ? [] : first === undefined ? others : [first, ...others],
      files: file,
      feeds: feed,
    }
  },
} satisfies Section<typeof type>
export type MonoSection = SectionConfig<typeof monoSection>
