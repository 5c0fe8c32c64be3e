/** What is wrong with a script is said with its file and line. */
import { describe, expect, it } from 'vitest'
import { parseScript, readScripts, ScriptError } from './script.ts'

const HEADER = 'title: a rule\nclause: 6.4, 8\n'
const steps = (...lines: readonly string[]) => parseScript('6/x.txt', `${HEADER}\n${lines.join('\n')}\n`).steps

describe('a script', () => {
  it('has a name, a title, clauses, needs, ways and steps with their lines', () => {
    const text = `# about\n${HEADER}needs: polled, auth password\nonly: xdr\n\n# a comment\nlogin A\n\nA> LEN NOP 00000001\n`
    expect(parseScript('6/x.txt', text)).toMatchObject({
      name: '6/x',
      title: 'a rule',
      clauses: ['6.4', '8'],
      needs: ['polled', 'auth password'],
      ways: ['tcp', 'ws-xdr'],
      steps: [
        { is: 'login', peer: 'A', as: 'user', by: 'scram-sha-256', line: 8 },
        { is: 'send', peer: 'A', line: 10, text: 'A> LEN NOP 00000001' },
      ],
    })
  })

  it('goes all ways unless it says otherwise', () => {
    expect(parseScript('x.txt', `${HEADER}\nconnect A\n`).ways).toEqual(['tcp', 'ws-xdr', 'ws-json'])
  })

  it('has steps of these kinds', () => {
    const parsed = steps(
      'connect A',
      'login B other by password',
      'silence A',
      'cut A',
      'end B',
      'closed A NOTICE 6',
      'closed A code 1007',
      'await A queued 1 on D',
      'await A queued 1 or more',
      'A>json {"cmd":1}',
      'A>3xjson {}',
      'A<2x 00000001',
      'connect C over tls with certificate',
      'wrap A tls 1.2 with certificate',
      'wrap A tls 1.1 in vain',
      'wrap A deflate',
      'A>> ffff',
      'login C by scram-sha-256-plus',
      'refused A with {secret} bound to B',
      'listen D',
      'called D',
      'answer D on {E}',
      'offers A no layer tls',
    )
    expect(parsed).toMatchObject([
      { is: 'connect', peer: 'A' },
      { is: 'login', peer: 'B', as: 'other', by: 'password' },
      { is: 'silence', peer: 'A' },
      { is: 'cut', peer: 'A' },
      { is: 'end', peer: 'B' },
      { is: 'closed', peer: 'A', notice: 6, code: undefined },
      { is: 'closed', peer: 'A', notice: undefined, code: 1007 },
      { is: 'await', peer: 'A', field: 'queued', count: 1n, orMore: false, channel: 'D' },
      { is: 'await', peer: 'A', field: 'queued', count: 1n, orMore: true, channel: undefined },
      { is: 'send-text', peer: 'A', content: '{"cmd":1}' },
      { is: 'send-text', peer: 'A', content: '[{},{},{}]' },
      { is: 'expect', peer: 'A' },
      { is: 'expect', peer: 'A' },
      { is: 'connect', peer: 'C', overTls: true, certificate: true },
      { is: 'wrap', peer: 'A', layer: 'tls', version: '1.2', certificate: true, inVain: false },
      { is: 'wrap', peer: 'A', layer: 'tls', version: '1.1', certificate: false, inVain: true },
      { is: 'wrap', peer: 'A', layer: 'deflate', version: undefined, certificate: false, inVain: false },
      { is: 'send-below', peer: 'A' },
      { is: 'login', peer: 'C', as: 'user', by: 'scram-sha-256-plus' },
      { is: 'refused', peer: 'A', secret: 'secret', boundTo: 'B' },
      { is: 'listen', peer: 'D' },
      { is: 'called', peer: 'D' },
      { is: 'answer', peer: 'D', channel: 'E' },
      { is: 'offers', peer: 'A', word: 'layer tls', isOffered: false },
    ])
  })

  it('holds what may come before a message with it', () => {
    const [first, second] = steps('A<* 00000001', 'A<2x 00000002')
    expect(first).toMatchObject({ is: 'expect', any: [{ text: '00000002' }], before: { text: '00000001' } })
    expect(second).not.toHaveProperty('before')
  })

  it('holds what may come in any order together', () => {
    const [group] = steps('any order', 'A< 00000001', 'A< 00000002', 'end of group')
    expect(group).toMatchObject({ is: 'expect', peer: 'A', any: [{ text: '00000001' }, { text: '00000002' }] })
  })
})

describe('what is wrong is said with file and line:', () => {
  it.each<[string, string, RegExp]>([
    ['no title', 'clause: 1\n\nconnect A', /^6\/x\.txt:1: no title/],
    ['no clause', 'title: x\n\nconnect A', /^6\/x\.txt:1: no clause/],
    ['a clause that is none', 'title: x\nclause: six\n\nconnect A', /:1: "six" is no clause/],
    ['an unknown key', 'title: x\nauthor: y\n\nconnect A', /^6\/x\.txt:2: .*keys are title, clause, needs, only/],
    ['a key twice', 'title: x\ntitle: y\n\nconnect A', /:2: "title" stands twice/],
    ['an unknown way', `${HEADER}only: udp\n\nconnect A`, /"only" is one of xdr, json, tcp, ws/],
    ['no steps', `${HEADER}\n# nothing\n`, /no steps/],
    ['no such step', `${HEADER}\nlogin A\nlogout A`, /^6\/x\.txt:5: no such step/],
    ['a login that is none', `${HEADER}\nlogin A by guess`, /^6\/x\.txt:4: guess is no method of login; there are/],
    ['a layer that is none', `${HEADER}\nwrap A brotli`, /:4: no such step/],
    ['a word that is none', `${HEADER}\nA> LEN NOOP 00000001`, /^6\/x\.txt:4: NOOP is neither/],
    ['half a byte', `${HEADER}\nA> 000`, /:4: 000 is neither/],
    ['a decimal that is too large', `${HEADER}\nA> #4294967296`, /:4: #4294967296 is neither/],
    ['a hole that is none', `${HEADER}\nA< {x:u16}`, /:4: \{x:u16\} is no hole/],
    ['a string above another', `${HEADER}\nA< {x:str>y}`, /:4: .*only u32 and u64/],
    ['a string without its end', `${HEADER}\nA< "abc`, /:4: /],
    ['a bracket without its end', `${HEADER}\nA> [ 00000001`, /:4: a \[ without its \]/],
    ['a bracket without its beginning', `${HEADER}\nA> 00000001 ]`, /:4: a \] without its \[/],
    ['an escape that is none', `${HEADER}\nA> "\\q"`, /:4: .*escapes are those of JSON/],
    ['JSON that is none', `${HEADER}\nA<json {`, /^6\/x\.txt:4: /],
    ['a counter that is none', `${HEADER}\nawait A lost 1`, /:4: a ledger has no lost/],
    ['a counter that is anything', `${HEADER}\nawait A queued 0 or more`, /:4: 0 or more is no condition/],
    ['what may come before nothing', `${HEADER}\nA<* 00`, /:4: nothing after A<\*/],
    ['what may come before another step', `${HEADER}\nA<* 00\nsilence A`, /:5: after A<\* stands what ends it/],
    ['a group without its end', `${HEADER}\nany order\nA< 00\nA< 00`, /^6\/x\.txt:4: a group without/],
    ['a group of one', `${HEADER}\nany order\nA< 00\nend of group`, /:6: a group is two or more/],
    ['a step in a group', `${HEADER}\nany order\nsilence A\nend of group`, /:5: a group holds only what is expected/],
    ['a group of two connections', `${HEADER}\nany order\nA< 00\nB< 00\nend of group`, /:6: a group is of one/],
  ])('%s', (_, text, message) => {
    expect(() => parseScript('6/x.txt', text)).toThrow(ScriptError)
    expect(() => parseScript('6/x.txt', text)).toThrow(message)
  })
})

describe('the scripts of the kit', () => {
  const scripts = readScripts(new URL('scripts/', import.meta.url))

  it('try every section that a producer of this version has', () => {
    const sections = new Set(scripts.flatMap(({ clauses }) => clauses.map((clause) => clause.split('.')[0])))
    for (const section of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16])
      expect(sections).toContain(String(section))
  })

  it('try each of the twelve rules of section 6', () => {
    const clauses = new Set(scripts.flatMap((script) => script.clauses))
    for (let rule = 1; rule <= 12; rule++) expect(clauses).toContain(`6.${rule}`)
  })

  it('lie in the folder of their first or second clause’s section', () => {
    for (const { name, clauses } of scripts) {
      expect(
        clauses.map((clause) => clause.split('.')[0]),
        name,
      ).toContain(name.split('/')[0])
    }
  })
})
