/**
 * Reads Ganglia's XML as strictly as any parser that checks: elements, attributes and references only, each where it may
 * be. It throws at the first thing that is no XML, or that an XML 1.0 document may not hold.
 */

export interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: readonly Element[]
}

const PROLOGUE =
  /^<\?xml version="1\.0"[^?]*\?>\s*<!DOCTYPE GANGLIA_XML \[(?:\s*<!(?:ELEMENT|ATTLIST|--)[^>]*>)*\s*\]>\s*/
const TAG = /<(?<close>\/)?(?<name>[A-Z_]+)(?<attributes>(?:\s+[A-Z_]+="[^"<]*")*)\s*(?<empty>\/)?>\s*/y
const NAMED: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

/** The root. Throws an Error that says where it is no XML. */
export function readXml(text: string): Element {
  const prologue = PROLOGUE.exec(text)
  if (!prologue) throw new Error(`no prologue: ${text.slice(0, 80)}`)
  TAG.lastIndex = prologue[0].length
  const top: Element[] = []
  const open: { element: Element; into: Element[] }[] = []
  while (TAG.lastIndex < text.length) {
    const at = TAG.lastIndex
    const { close, name = '', attributes = '', empty } = TAG.exec(text)?.groups ?? {}
    if (name === '') throw new Error(`no tag at ${at}: ${text.slice(at, at + 80)}`)
    if (close !== undefined) {
      if (open.pop()?.element.name !== name) throw new Error(`</${name}> closes nothing at ${at}`)
      continue
    }
    const into: Element[] = []
    const element = { name, attributes: readAttributes(attributes), children: into }
    ;(open.at(-1)?.into ?? top).push(element)
    if (empty === undefined) open.push({ element, into })
  }
  const [root, ...others] = top
  if (root === undefined || others.length > 0 || open.length > 0) throw new Error('not one whole element')
  return root
}

function readAttributes(text: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const [, name = '', value = ''] of text.matchAll(/([A-Z_]+)="([^"<]*)"/g)) {
    if (name in found) throw new Error(`${name} stands twice: ${text}`)
    found[name] = readText(value)
  }
  return found
}

function readText(text: string): string {
  if (/&(?!(?:lt|gt|amp|quot|apos|#\d+);)/.test(text)) throw new Error(`a bare ampersand: ${text}`)
  const plain = text.replaceAll(/&(?:#(\d+)|(\w+));/g, (_, code: string | undefined, name: string) =>
    code === undefined ? (NAMED[name] as string) : String.fromCodePoint(Number(code)),
  )
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  if (/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\p{Surrogate}/u.test(plain))
    throw new Error(`no character of XML: ${text}`)
  return plain
}

/** The hosts of the one cluster, in order. */
export function hostsOf(text: string): readonly Element[] {
  const all = (element: Element): readonly Element[] =>
    element.name === 'HOST' ? [element] : element.children.flatMap(all)
  return all(readXml(text))
}

/** What a host shows, by name; undefined if it is not there. */
export function metricsOf(text: string, host: string): ReadonlyMap<string, Element> | undefined {
  const found = hostsOf(text).find(({ attributes }) => attributes['NAME'] === host || attributes['IP'] === host)
  return found && new Map(found.children.map((metric) => [metric.attributes['NAME'] ?? '', metric]))
}
