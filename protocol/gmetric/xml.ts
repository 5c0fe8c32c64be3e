/**
 * gmond's XML, piece by piece. It contains text from the network, so everything is escaped, and the result is pure ASCII.
 * Escaping is not enough: gmetad uses names as file names and exits if one contains a slash, escapes nothing in its own
 * output, and has 1,572 bytes for the strings of a metric. What it cannot handle is altered here.
 */
import type { ExtraElement } from './packet.ts'

/** The version that gmond reports; gmetad and the web front end check whether it is older than this. */
const VERSION = '3.7.2'

export const SLOPES = ['zero', 'positive', 'negative', 'both', 'unspecified', 'derivative'] as const
/** rrdtool lengthens the name of a file while creating it; if that fails, gmetad stops reading the document. */
const MAX_NAME_BYTES = 200
const MAX_VALUE_BYTES = 1024
const MAX_LABEL_BYTES = 128
const MAX_LOCATION_BYTES = 255
/** The space of gmetad for the strings of a metric, without type, slope and source. */
const MAX_METRIC_BYTES = 1500
const MAX_EXTRA = 32
/** The directory in which gmetad keeps the sums of a cluster, next to its hosts. */
const SUMMARY = '__summaryinfo__'

const declared = {
  GANGLIA_XML: ['(CLUSTER)*', 'VERSION', 'SOURCE'],
  CLUSTER: ['(HOST)*', 'NAME', 'OWNER', 'LATLONG', 'URL', 'LOCALTIME'],
  HOST: ['(METRIC)*', 'NAME', 'IP', 'LOCATION', 'TAGS', 'REPORTED', 'TN', 'TMAX', 'DMAX', 'GMOND_STARTED'],
  METRIC: ['(EXTRA_DATA)*', 'NAME', 'VAL', 'TYPE', 'UNITS', 'TN', 'TMAX', 'DMAX', 'SLOPE'],
  EXTRA_DATA: ['(EXTRA_ELEMENT)*'],
  EXTRA_ELEMENT: ['EMPTY', 'NAME', 'VAL'],
}

const DTD = Object.entries(declared)
  .map(([element, [content, ...attributes]]) => {
    const list = attributes.map((attribute) => ` ${attribute} CDATA #IMPLIED`).join('')
    return `<!ELEMENT ${element} ${content}>\n${list === '' ? '' : `<!ATTLIST ${element}${list}>\n`}`
  })
  .join('')

export interface XmlHost {
  readonly name: string
  readonly address: string
  /** Seconds since 1970. */
  readonly reported: number
  /** Three times in seconds: since the last packet, between two heartbeats, until it is removed. */
  readonly tn: number
  readonly tmax: number
  readonly dmax: number
  readonly location: string
  /** Seconds since 1970; 0 if not known. */
  readonly started: number
}

export interface XmlMetric {
  readonly name: string
  readonly value: string
  /** One of Ganglia's types. */
  readonly type: string
  readonly units: string
  readonly tn: number
  readonly tmax: number
  readonly dmax: number
  /** The number in the packet. */
  readonly slope: number
  readonly extra: readonly ExtraElement[]
}

/** `localTime` is in seconds since 1970. */
export function documentStart(cluster: string, localTime: number): string {
  const about = attributes({ NAME: safeName(cluster), LOCALTIME: localTime })
  const unspecified = attributes({ OWNER: 'unspecified', LATLONG: 'unspecified', URL: 'unspecified' })
  return (
    `<?xml version="1.0" encoding="ISO-8859-1" standalone="yes"?>\n<!DOCTYPE GANGLIA_XML [\n${DTD}]>\n` +
    `<GANGLIA_XML VERSION="${VERSION}" SOURCE="gmond">\n<CLUSTER${about}${unspecified}>\n`
  )
}

export const DOCUMENT_END = '</CLUSTER>\n</GANGLIA_XML>\n'

export function hostStart(host: XmlHost): string {
  const { name, address, reported, tn, tmax, dmax, location, started } = host
  const who = attributes({
    NAME: safeName(name),
    IP: withoutSyntax(address),
    TAGS: '',
    REPORTED: reported,
    TN: tn,
    TMAX: tmax,
  })
  const where = attributes({
    DMAX: dmax,
    LOCATION: withoutSyntax(cut(location, MAX_LOCATION_BYTES)),
    GMOND_STARTED: started,
  })
  return `<HOST${who}${where}>\n`
}

export const HOST_END = '</HOST>\n'

/** `maxBytes` limits its strings together, if there is less space than in gmetad. */
export function metricElement(metric: XmlMetric, maxBytes = MAX_METRIC_BYTES): string {
  const { type, tn, tmax, dmax } = metric
  const name = safeName(metric.name)
  const value = withoutSyntax(cut(metric.value, Math.min(MAX_VALUE_BYTES, maxBytes - byteLength(name))))
  const room = maxBytes - byteLength(name) - byteLength(value)
  const units = withoutSyntax(cut(metric.units, Math.min(MAX_LABEL_BYTES, room)))
  const slope = SLOPES[metric.slope] ?? 'unspecified'
  const what = attributes({ NAME: name, VAL: value, TYPE: type, UNITS: units, TN: tn, TMAX: tmax })
  const lines = extraLines(metric.extra, room - byteLength(units))
  return (
    `<METRIC${what}${attributes({ DMAX: dmax, SLOPE: slope })}>\n` + `<EXTRA_DATA>\n${lines}</EXTRA_DATA>\n</METRIC>\n`
  )
}

/** Alters a name so that it can be the name of a file, and not that of gmetad's own directory. */
export function safeName(name: string): string {
  const text = withoutSyntax(cut(name, MAX_NAME_BYTES)).replaceAll('/', '_')
  if (text.toLowerCase() === SUMMARY) return `_${text}`
  return text === '.' || text === '..' ? text.replaceAll('.', '_') : text
}

/** The lines of the extra elements, the last one first, as in gmond. */
function extraLines(extra: readonly ExtraElement[], room: number): string {
  let left = room
  let lines = ''
  for (const { key, data } of extra.slice(0, MAX_EXTRA)) {
    // Elements that are too long are not even measured.
    left -= key.length + data.length > left ? left + 1 : byteLength(key) + byteLength(data) + 2
    if (left < 0) break
    lines = `<EXTRA_ELEMENT${attributes({ NAME: withoutSyntax(key), VAL: withoutSyntax(data) })}/>\n${lines}`
  }
  return lines
}

function attributes(given: Readonly<Record<string, string | number>>): string {
  let text = ''
  for (const name in given) text += ` ${name}="${escaped(String(given[name]))}"`
  return text
}

/**
 * Characters that gmetad cannot pass on. It sends text to the web front end without escaping it again, so & < and " would
 * make the XML invalid. XML cannot express most control characters, lone surrogates and two others. A replacement is never
 * longer than its original.
 */
const NOT_SAFE = /[&<"\ufffe\uffff]|\p{Cs}|(?![\t\n\r])\p{Cc}/gu

function withoutSyntax(text: string): string {
  return text.replace(NOT_SAFE, '_')
}

const SPECIAL = /[^ !#-%(-;=?-~]/gu

function escaped(text: string): string {
  return text.replace(SPECIAL, (character) => `&#${character.codePointAt(0)};`)
}

function byteLength(text: string): number {
  let bytes = 0
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
  }
  return bytes
}

function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text
  let left = maxBytes
  let end = 0
  for (const character of text) {
    left -= byteLength(character)
    if (left < 0) return text.slice(0, end)
    end += character.length
  }
  return text
}
