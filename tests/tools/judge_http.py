# SPDX-License-Identifier: MIT
# judge_http.py PROGRAM N SEED: valid, damaged and random heads of requests. Whatever our parser (PROGRAM, http_heads.c) accepts,
# h11 has to accept with the same method, target and length.
import random
import struct
import subprocess
import sys

import h11

R = random.Random(int(sys.argv[3]))
M=["GET","HEAD","PUT","POST","DELETE","BREW","get","P@T"]
T=["/","/a","/a%20b","http://h/a","*","/x?y","/\x7f","/ä"]
H=["Host: h","Host: h:80","host:h","Content-Length: 0","Content-Length: 5","Content-Length: 05","Content-Length: 5, 5","Content-Length: +5","Transfer-Encoding: chunked","Transfer-Encoding: gzip, chunked","Expect: 100-continue","Range: bytes=0-1","X: y","X : y"," folded","X:","X: \x00","X: a\tb","If-Match: \"a\"","Connection: close","Connection: keep-alive, Upgrade","Upgrade: h2c"]
def head():
	ls=[R.choice(M[:4] if R.random()<.8 else M)+" "+R.choice(T[:4] if R.random()<.8 else T)+" "+R.choice(["HTTP/1.1"]*8+["HTTP/1.0","HTTP/2.0","HTTP/1.1 "])]
	if R.random()<.85: ls.append("Host: h")
	ls+=[R.choice(H) for _ in range(R.choice([0,1,1,2,3]))]
	b=("\r\n".join(ls)+"\r\n\r\n").encode("latin-1")
	k=R.random()
	if k<.35:
		b=bytearray(b)
		for _ in range(R.randint(1,2)):
			i=R.randrange(len(b)); c=R.random()
			if c<.4: b[i]=R.choice(b"\r\n\t :,;\0\x7f\x80ab0/")
			elif c<.7: del b[i]
			else: b.insert(i,R.choice(b"\r\n\t :,\0"))
			if not b: b=bytearray(b"\r\n\r\n")
		b=bytes(b)
	elif k<.4: b=bytes(R.randrange(256) for _ in range(R.randint(1,80)))+b"\r\n\r\n"
	return b

def agrees(head, fields):
	c = h11.Connection(h11.SERVER)
	try:
		c.receive_data(head[:int(fields[1])])
		e = c.next_event()
	except h11.RemoteProtocolError:
		return False
	if not isinstance(e, h11.Request) or e.method != fields[4] or e.target != fields[5]:
		return False
	headers = dict(e.headers)
	chunked = b"transfer-encoding" in headers
	return chunked == (fields[2] == b"1") and int(headers.get(b"content-length", b"0")) == int(fields[3])


heads = [head() for _ in range(int(sys.argv[2]))]
data = b"".join(struct.pack("=I", len(h)) + h for h in heads)
lines = subprocess.run([sys.argv[1]], input=data, stdout=subprocess.PIPE, check=True).stdout.split(b"\n")
accepted = wrong = 0
for h, line in zip(heads, lines):
	fields = line.split(b" ")
	if fields[0] != b"0":
		continue
	accepted += 1
	if not agrees(h, fields):
		wrong += 1
		print("not accepted in the same way:", h, line)
print(len(heads), "heads,", accepted, "accepted,", wrong, "differ")
sys.exit(wrong > 0 or accepted < len(heads) // 20 or accepted == len(heads))
