/**
 * The address of a Qpid broker and the user who connects, from a URL. It may hold a password: nothing here repeats any
 * part of it.
 */
import { formatAddress, parseAddress } from '../../core/address.ts'

export interface BrokerUrl {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  /** Undefined for SASL ANONYMOUS. */
  readonly user: string | undefined
  readonly password: string | undefined
  /** Empty for the broker's default. */
  readonly virtualHost: string
}

const PORTS = { amqp: 5672, amqps: 5671 } as const

/** `amqp://user:secret@host:5672/vhost`, parts percent-encoded; undefined if `text` is not such a URL. */
export function parseBrokerUrl(text: string): BrokerUrl | undefined {
  const match =
    /^(amqps?):\/\/(?:([^\s@/?#:]*)(?::([^\s@/?#]*))?@)?(\[[^\]\s]*\]|[^\s@/?#:]+)(?::(\d+))?(?:\/([^\s?#]*))?$/i.exec(
      text,
    )
  if (match === null) return undefined
  const [, scheme = '', user = '', password, host = '', port, virtualHost = ''] = match
  const isTls = scheme.toLowerCase() === 'amqps'
  const address = parseAddress(`${host}:${port ?? (isTls ? PORTS.amqps : PORTS.amqp)}`)
  const decoded = [user, password ?? '', virtualHost].map(percentDecoded)
  const [name = '', secret, path = ''] = decoded
  if (address === undefined || address.port === 0 || decoded.includes(undefined)) return undefined
  const isAnonymous = name === '' || name === 'anonymous'
  if (name === '' && password !== undefined) return undefined
  return {
    ...address,
    isTls,
    user: isAnonymous ? undefined : name,
    password: isAnonymous || password === undefined ? undefined : secret,
    virtualHost: path,
  }
}

/** Formats the address without the user and password. */
export function formatBroker({ host, port, isTls }: Pick<BrokerUrl, 'host' | 'port' | 'isTls'>): string {
  return `${isTls ? 'amqps' : 'amqp'}://${formatAddress({ host, port })}`
}

function percentDecoded(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text)
    // NUL ends names and passwords of SASL PLAIN [RFC 4616].
    return decoded.includes('\0') ? undefined : decoded
  } catch {
    return undefined
  }
}
