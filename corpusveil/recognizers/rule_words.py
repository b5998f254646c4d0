"""What the rules look for: forms of national ids, and words and endings, by language."""

IDS = """
us.ssn 3-2-4; us.itin 3-2-4; ca.sin 3-3-3; gb.nhs 3-3-4; de.idnr 11 2-3-3-3; fr.nif 13 2-2-3-3-3; dk.cpr 6-4; cz.rc 6-4
6-3; fr.nir 15 13-2 1-2-2-2-3-3-2; be.nn 11 2-2-2-3-2 6-3-2; nl.bsn 4-2-3 3-3-3; ch.ssn 13 3-4-4-2; at.vnr 4-6; pl.pesel
11; se.personnummer 10 12 6-4 8-4; no.fodselsnummer 11 6-5; fi.hetu +6-4 +11; is_.kennitala 10 6-4; ro.cnp 13; bg.egn
10; ee.ik 11; lt.asmens 11; lv.pvn 6-5; gr.amka 11; si.emso 13; es.dni +9 +8-1 +2-3-3-1; es.nie +9 +8-1; pt.cc +12
+8-1-3; it.codicefiscale +16; ie.pps +8 +9 +7-1 +7-2; br.cpf 11 3-3-3-2 9-2; cl.rut 1-3-3-1 2-3-3-1 7-1 8-1 +1-3-3-1
+2-3-3-1 +7-1 +8-1; ar.cuit 2-8-1; mx.curp +18; cn.ric 18 +18; kr.rrn 13 6-7; in_.aadhaar 4-4-4; my.nric 6-2-4; th.pin
1-4-5-2-1; tr.tckimlik 11; za.idnr 13 6-4-3; pk.cnic 5-7-1
"""
"""Modules of python-stdnum, and how many characters stand between the marks of their numbers, ``+`` if also letters.

A form without marks is listed where at most one in fifty numbers of that many digits is valid.
"""
REGIONS = "US GB DE FR NL BE CH AT SE FI IT AU IN JP BR ZA CN RU KR TR IE NZ IL"
"""Where phone numbers without a country's code are looked for; most of them begin with 0 or a bracket."""
PHONE_WORDS = """
call cell cellphone celular fax fon handy mobil mobile móvil phone portable tel telefax telefon telefono telefoon
telephone teléfono téléphone telefone whatsapp
"""
BIRTH_WORDS = """
birth birthdate birthday born dob b doğum fødselsdato född geb geboortedatum geboren geburtsdatum geburtstag nacida
nacido nacimiento naissance nascida nascido nascimento nascita nata nato né née født urodzenia urodzona urodzony
"""
LABELS = """
auftrag auftragsnummer bestellnummer bestellung commande confirmation factura facture fattura id invoice item ordine
order passport pedido rechnung rechnungsnummer ref reference serial sku ssn ticket tracking
"""
"""Words for other numbers: after one of these, an earlier word for phones says nothing of a number."""
MONTHS = """
jan feb mar apr may jun jul aug sep oct nov dec mär mai okt dez jän fév fev avr jui aoû déc ene abr ago dic gen mag giu
lug set ott out mrt mei maj sty lut kwi cze lip sie wrz paź lis gru
"""
"""How months begin, in some languages."""
ENDINGS = """
com net org edu gov mil int info biz mobi coop aero io ai app dev xyz ae ar au be bg br ca ch ci cl cn cr cu cz de dk ec
ee eg eu fi fr ge gr hk hr hu ie ir jp ke kr kz lk lt lu lv mt mx ng nl nz ph pt ro ru sg sk tr tw ua uk uy vn za
"""
WORDLIKE = """
ac as at blog cat cc cloud club co id il in is it la law life live ma md me my news no online page pe pl pro py rs sa se
sh shop si site so store tech th to top tv us ve web wiki work world ws zone
"""
"""Endings of domains, of the IANA's list; those that are also words only before a path or after two dots."""
