/** The tables `[[announce]]`: main monitors that cannot connect to this server, so that this server connects to them. */
import { z } from 'zod'
import { parseIdentityOrNone } from '../../../auth/login-attempt.ts'
import { decoded, isLoopback, key, needed, optional, path, type SectionConfig, tableList } from '../../kit/config.ts'

function parseAnnounceUrl(text: string): string | undefined {
  if (!/^(?:tcp|tls):\/\/[^/@]+:\d{1,5}\/?$/.test(text) || !URL.canParse(text)) return undefined
  const port = Number(new URL(text).port)
  return port >= 1 && port <= 65_535 ? text : undefined
}

const url = () => ({
  type: decoded(parseAnnounceUrl),
  expected: 'a URL like "tls://main.example:7655", with tls or tcp, and a port',
})
const identity = () => ({
  type: z.string().refine((text) => parseIdentityOrNone(text) !== undefined),
  expected: 'the name of a user, as "tenant/user" or "user"',
})
const announcedName = () => ({
  type: z.string().regex(/^[^/*\p{Cc}]{0,64}$/u),
  expected: 'a name of 1 to 64 characters without "/" and "*"',
})

const table = z
  .strictObject({
    url: needed(url(), 'Where the main monitor listens for servers such as this one (`listen` of its `[[upstream]]`).'),
    name: key(
      announcedName(),
      '',
      'What this server is called there, the `name` of its table; `producer.name` if empty.',
    ),
    user: needed(identity(), 'The user that the main monitor becomes here: the rights of this user say what it sees.'),
    secret_file: needed(
      path(),
      'A file with the secret that both sides prove to know: at least 16 characters, made at random.',
    ),
    ca: optional(path(), 'Authorities for the certificate of the main monitor, a PEM file; else those of Node.'),
  })
  .superRefine(({ url, ca }, context) => {
    const say = (message: string): void => context.addIssue({ code: 'custom', message })
    const { protocol, hostname } = new URL(url)
    if (protocol === 'tls:') return
    if (ca !== undefined) say('`ca` is for tls://')
    if (hostname !== 'localhost' && !isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'))) {
      say('values are only sent over tls://, or to this machine: nothing else proves who the main monitor is')
    }
  })
  .transform(({ secret_file, ...rest }) => ({ ...rest, secretFile: secret_file }))

export const announceSection = tableList(
  z
    .array(table)
    .max(16)
    .default([])
    .describe(
      'Main monitors to which this server connects, because they cannot connect to it, one table each; only in the file. ' +
        'How both sides are set up: [hierarchy.md](hierarchy.md#servers-that-cannot-be-reached).',
    ),
  { isLive: true },
)
/** A main monitor to which this server announces itself. */
export type AnnounceTable = SectionConfig<typeof announceSection>[number]
