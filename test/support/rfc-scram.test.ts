import { expect, test } from 'vitest'
import { RfcScram } from './rfc-scram.ts'

// RFC 7677 section 3
test('the client in the tests says what RFC 7677 prints, and believes what the server says there', () => {
  const client = new RfcScram({ username: 'user', password: 'pencil', nonce: 'rOprNGfwEbeRWgbNEkqO' })
  const nonce = 'rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0'
  expect(client.clientFirst().toString()).toBe('n,,n=user,r=rOprNGfwEbeRWgbNEkqO')
  const final = client.clientFinal(Buffer.from(`r=${nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`)).toString()
  expect(final).toBe(`c=biws,r=${nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=`)
  expect(client.isProvenBy(Buffer.from('v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4='))).toBe(true)
  expect(client.isProvenBy(Buffer.from('v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4='))).toBe(false)
})
