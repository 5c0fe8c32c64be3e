/** The tables `[[drain]]`: destinations to which the server delivers values by itself (docs/drains.md). */
import { z } from 'zod'
import {
  ALL_TENANTS,
  decoded,
  duration,
  integer,
  isOwnMachine,
  key,
  needed,
  optional,
  path,
  plainText,
  type SectionConfig,
  tableList,
  tenantOrAll,
} from '../../kit/config.ts'

export type DrainProtocol = 'prometheus' | 'otlp' | 'json'

export interface DrainUrl {
  readonly protocol: DrainProtocol
  /** As it is requested, http or https. */
  readonly href: string
  /** As it stands in the configuration. */
  readonly text: string
}

const SHAPE = /^(prometheus|otlp|json)\+(https?:\/\/.+)$/i

/** undefined if it is no URL of a drain. */
function parseDrainUrl(text: string): DrainUrl | undefined {
  const [, protocol, rest] = SHAPE.exec(text) ?? []
  if (protocol === undefined || rest === undefined || !URL.canParse(rest)) return undefined
  const http = new URL(rest)
  if (http.username !== '' || http.password !== '' || http.hash !== '') return undefined
  return { protocol: protocol.toLowerCase() as DrainProtocol, href: http.href, text }
}

const drainName = () => ({
  type: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
  expected: 'a name: 1 to 64 letters, digits, ".", "_" or "-", the first a letter or digit',
})
const drainUrl = () => ({
  type: decoded(parseDrainUrl),
  expected:
    'a URL like "prometheus+https://host/api/v1/write", "otlp+https://host/v1/metrics" or "json+https://host/values", or with +http, and without a user',
  isSecret: true,
})
const patterns = () => ({
  type: z
    .array(z.string().regex(/^\P{Cc}{1,255}$/u))
    .min(1)
    .max(64),
  expected: 'a list of 1 to 64 names or patterns of metrics, like ["gmetric.*", "host.load.one"]',
})
const labelName = () => ({
  type: z.string().regex(/^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$|^$/),
  expected: 'the name of a label: letters, digits and "_", and no digit in front',
})
const roleName = () => ({ type: z.string().regex(/^\P{Cc}{1,255}$/u), expected: 'the name of a role' })

const table = z
  .strictObject({
    name: needed(
      drainName(),
      'Its name. Its channel is called `drain:` and this name, and belongs to a user of that name.',
    ),
    url: needed(drainUrl(), 'Where the values go.'),
    metrics: needed(patterns(), 'What is delivered. `prometheus.*` and `otlp.*` are only if a name here begins so.'),
    tenant: key(
      tenantOrAll(),
      'default',
      `The tenant whose metrics these are; with \`"${ALL_TENANTS}"\` each tenant has a drain as this table says.`,
    ),
    tenant_label: key(
      labelName(),
      '',
      'A label that is added to everything, with the name of the tenant: where drains of several tenants have one destination. ' +
        `Needed with \`tenant = "${ALL_TENANTS}"\`, but for JSON.`,
    ),
    role: key(roleName(), 'consumer', 'The role whose rules say which metrics may be read.'),
    token_file: optional(
      path(),
      'A file with a token, which is sent as `Authorization: Bearer`. Read for each request.',
    ),
    username: key(plainText(), '', 'A user name for HTTP Basic authentication.'),
    password_file: optional(path(), 'A file with the password of that user. Read for each request.'),
    secret_file: optional(
      path(),
      'A file with the secrets that sign requests to `json+https` URLs, one a line: `whsec_` and 24 to 64 bytes as base64. ' +
        'Read for each request.',
    ),
    ca: optional(path(), 'Authorities for the certificate of the destination, a PEM file; else those of Node.'),
    cert: optional(path(), 'A client certificate with its chain, a PEM file.'),
    key: optional(path(), 'Its private key, a PEM file.'),
    batch_size: key(integer(1, 50_000), 2_000n, 'Values of one request at most.'),
    batch_age: key(duration('10ms', '1h'), '1s', 'How long a value waits for others to share a request with.'),
    timeout: key(duration('100ms', '10m'), '30s', 'How long the destination may take for its answer.'),
  })
  .superRefine(
    ({ url, tenant, tenant_label, token_file, username, password_file, secret_file, cert, key }, context) => {
      const add = (message: string): void => context.addIssue({ code: 'custom', message })
      if ((cert === undefined) !== (key === undefined)) add('`cert` and `key` go together')
      if ((username === '') !== (password_file === undefined)) add('`username` and `password_file` go together')
      if (token_file !== undefined && username !== '') add('either `token_file` or `username`, not both')
      if (secret_file !== undefined && url.protocol !== 'json')
        add('`secret_file` goes with a `url` of json+https or json+http')
      if (tenant === ALL_TENANTS && tenant_label === '' && url.protocol !== 'json') {
        add(
          `\`tenant\`: with "${ALL_TENANTS}", \`tenant_label\` has to say which label tells the series of tenants apart`,
        )
      }
      const hasSecret = token_file !== undefined || username !== ''
      const { protocol, hostname } = new URL(url.href)
      if (hasSecret && protocol === 'http:' && !isOwnMachine(hostname)) {
        add('`url`: a token or password would be sent in clear: use +https')
      }
    },
  )
  .transform(({ tenant_label, token_file, password_file, secret_file, batch_size, batch_age, timeout, ...rest }) => ({
    ...rest,
    tenantLabel: tenant_label,
    tokenFile: token_file,
    passwordFile: password_file,
    secretFile: secret_file,
    batchSize: batch_size,
    batchAgeMs: batch_age,
    timeoutMs: timeout,
  }))

export const drainSection = tableList(
  z
    .array(table)
    .max(100)
    .superRefine((tables, context) => {
      const tenants = new Map<string, string[]>()
      for (const { name, tenant } of tables) {
        const others = tenants.get(name) ?? []
        const isTaken =
          others.some((other) => [tenant, ALL_TENANTS].includes(other)) || (tenant === ALL_TENANTS && others.length > 0)
        const whose = [tenant, ...others].includes(ALL_TENANTS) ? '' : ` of the tenant ${tenant}`
        if (isTaken) context.addIssue({ code: 'custom', message: `two${whose} are called ${name}` })
        tenants.set(name, [...others, tenant])
      }
    })
    .default([])
    .describe(
      'Destinations to which values are delivered, one table each; only in the file. How they are delivered: ' +
        '[drains.md](drains.md).',
    ),
  { isLive: true },
)
export type DrainTable = SectionConfig<typeof drainSection>[number]
